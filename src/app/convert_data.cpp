// `millrace data`: foreign data files in, one HDF5 data file out.
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "app/commands.h"
#include "app/output_file.h"
#include "base/log.h"
#include "base/text.h"
#include "dataset/convert.h"

namespace millrace::app {

ExitCode convert_data(const Arguments& arguments, comm::World& world) {
  world.on_root_then_all([&] {
    dataset::ConvertOptions options;
    options.name = arguments.name;
    options.overwrite = arguments.overwrite;
    if (arguments.train_limit > 0) options.train_limit = arguments.train_limit;
    if (arguments.test_limit > 0) options.test_limit = arguments.test_limit;
    const auto& formats = dataset::foreign_format_names();
    for (std::size_t i = 0; i < formats.size(); ++i) {
      if (formats[i] == arguments.data_format) options.format = static_cast<dataset::ForeignFormat>(i);
    }
    if (!arguments.data_format.empty() && !options.format) {
      throw InvalidInput(unknown_name("--format", arguments.data_format, formats));
    }
    const std::vector<std::filesystem::path> inputs(arguments.files.begin(), arguments.files.end());
    refuse_same_file(*arguments.output, inputs);
    const dataset::Converted made = dataset::convert(inputs, *arguments.output, options);
    log::notice(fmt::format("{}: {} of '{}', {} training and {} test {}", *arguments.output,
                            name_of(made.description.kind), made.description.name, made.train, made.test,
                            made.description.kind == dataset::DataKind::text ? "tokens" : "samples"));
    return std::string();
  });
  return ExitCode::done;
}

}  // namespace millrace::app
