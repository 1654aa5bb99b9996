// Smaller models with the same answer: items that some best solution keeps together become one (TECHNIQUES, "Exact
// partition": dominance first).
#pragma once

#include "partitioners/common/max_load/model.h"

namespace millrace::partitioners::max_load {

/// A model with a chain of load below `threshold` iff `model` has one; any chain of it unfolds to one of `model` that
/// is no fuller. Members may leave out operators that cost nothing wherever they are: `placed` puts them back.
///  - Bytes count nothing where all items fit on every accelerator.
///  - An item without time and bytes joins its only predecessor (or only successor, or
///    any other where the model has no order for it), if the transfers between the two
///    cost at least as much as all that the item has with others: moving it there is never worse for any device.
///  - An item without time, bytes and transfers is left out; its neighbours keep their order.
///  - Two items whose separation alone costs `threshold` or more stay together, with all that is between them.
Model reduced(const Model& model, double threshold);

/// `chain` unfolded, of a reduced model; operators that no part has join the last part that one of their predecessors
/// is in. Items are those of `original`, whose members are its items.
Parts placed(const Model& original, const Model& reduced, const Parts& chain);

}  // namespace millrace::partitioners::max_load
