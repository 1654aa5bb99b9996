# The oneDNN device: its sources, relative to src/kernels.
set(ONEDNN_SOURCES
  onednn/attention.cpp
  onednn/batch_matmul.cpp
  onednn/batch_norm.cpp
  onednn/bf16_linear.cpp
  onednn/bf16_product.cpp
  onednn/channel_loops.cpp
  onednn/conv2d.cpp
  onednn/convolution_shape.cpp
  onednn/convolution_variants.cpp
  onednn/cross_entropy_rows.cpp
  onednn/dnnl_api.cpp
  onednn/dropout.cpp
  onednn/elementwise.cpp
  onednn/embedding.cpp
  onednn/floor.cpp
  onednn/gradient_reorder.cpp
  onednn/layer_norm.cpp
  onednn/layout_adapter.cpp
  onednn/layouts.cpp
  onednn/linear.cpp
  onednn/logits_loss.cpp
  onednn/losses.cpp
  onednn/matrix_product.cpp
  onednn/movement.cpp
  onednn/onednn_device.cpp
  onednn/onednn_factory.cpp
  onednn/pool.cpp
  onednn/race.cpp
  onednn/row_loops.cpp
  onednn/softmax.cpp)
# Square roots and comparisons vectorise only where no one asks for errno or traps; nothing here does.
set_source_files_properties(${ONEDNN_SOURCES} PROPERTIES COMPILE_OPTIONS "-fno-math-errno;-fno-trapping-math")
