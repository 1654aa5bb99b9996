// What the page carries inside; made from the files of this folder when the product is built.
#pragma once

#include <string_view>

namespace millrace::record {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;
extern const std::string_view kChartLibrary;
extern const std::string_view kChartLicence;

}  // namespace millrace::record
