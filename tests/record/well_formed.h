// A small check that a text is well-formed XML, with what tests count in it.
#pragma once

#include <map>
#include <string>

namespace millrace::record::testing {

struct XmlCheck {
  std::string fault;                    ///< empty: well-formed
  std::map<std::string, int> elements;  ///< how often each occurs
  std::string text;                     ///< between the tags, entities decoded
};

/// Elements, attributes, text and the predefined entities: what the product writes. No comments, no declarations.
XmlCheck check_xml(const std::string& xml);

}  // namespace millrace::record::testing
