// Refuses what is no readable text before a YAML parser turns it into a riddle: binary files and tabs.
#pragma once

#include <memory>
#include <string_view>

#include "config/node.h"

namespace millrace::config {

/// \throws InvalidInput  with place and reason: control characters, bytes that are not UTF-8, tabs in indentation.
void check_text(std::string_view text, const std::shared_ptr<const Source>& source);

/// Only that all is readable text in UTF-8, for files whose tabs mean something; `kind` names them: "PipeDream
/// profile".
void check_characters(std::string_view text, const std::shared_ptr<const Source>& source, std::string_view kind);

/// True if the first quote in `text` has its closing one. The YAML library takes an end of file for a closing quote.
bool closes_first_quote(std::string_view text);

/// The standard form of an error at a place: "exp.yaml:3:1: reason".
[[noreturn]] void refuse_at(const Where& where, std::string_view reason);

}  // namespace millrace::config
