# Writes OUTPUT, a source file that defines the string views NAMES with the contents of FILES (both lists).
# usage: cmake -DOUTPUT=… -DNAMES=a;b -DFILES=x;y -P embed.cmake
set(text "// Made from the files of the page.\n#include \"record/page/assets.h\"\n\nnamespace millrace::record {\n")
foreach(name file IN ZIP_LISTS NAMES FILES)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND text "static constexpr char k${name}Bytes[] = {${bytes}};\n"
    "const std::string_view k${name}(k${name}Bytes, sizeof k${name}Bytes);\n")
endforeach()
file(WRITE ${OUTPUT} "${text}}  // namespace millrace::record\n")
