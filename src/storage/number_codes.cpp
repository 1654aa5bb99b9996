// HDF5's codes for the number types. Private to the room.
#include "storage/number_codes.h"

namespace millrace::storage {

std::string_view name_of(NumberType type) {
  static constexpr std::string_view names[]{"uint8", "int32", "int64", "uint64", "float32", "float64"};
  return names[static_cast<int>(type)];
}

std::size_t size_of(NumberType type) {
  static constexpr std::size_t sizes[]{1, 4, 8, 8, 4, 8};
  return sizes[static_cast<int>(type)];
}

hid_t memory_code(NumberType type) {
  const hid_t codes[]{H5T_NATIVE_UINT8,  H5T_NATIVE_INT32, H5T_NATIVE_INT64,
                      H5T_NATIVE_UINT64, H5T_NATIVE_FLOAT, H5T_NATIVE_DOUBLE};
  return codes[static_cast<int>(type)];
}

hid_t file_code(NumberType type) {
  const hid_t codes[]{H5T_STD_U8LE,  H5T_STD_I32LE,  H5T_STD_I64LE,
                      H5T_STD_U64LE, H5T_IEEE_F32LE, H5T_IEEE_F64LE};
  return codes[static_cast<int>(type)];
}

std::optional<NumberType> number_type_of(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  const std::size_t size = H5Tget_size(type);
  if (kind == H5T_FLOAT && size == 4) return NumberType::float32;
  if (kind == H5T_FLOAT && size == 8) return NumberType::float64;
  if (kind != H5T_INTEGER) return std::nullopt;
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  if (size == 1 && !is_signed) return NumberType::uint8;
  if (size == 4 && is_signed) return NumberType::int32;
  if (size == 8) return is_signed ? NumberType::int64 : NumberType::uint64;
  return std::nullopt;
}

}  // namespace millrace::storage
