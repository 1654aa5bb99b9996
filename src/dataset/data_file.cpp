// The data file's names and kinds (INTERFACES 9, Data files), as writer and reader share them.
#include "dataset/data_file.h"

namespace millrace::dataset {

std::string_view name_of(DataKind kind) {
  static constexpr std::string_view names[]{"images", "features", "text"};
  return names[static_cast<int>(kind)];
}

}  // namespace millrace::dataset
