// Typed access to the buffers of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/op_kernel.h"

namespace millrace::kernels::reference {

template <class T>
const T* input(const OpCall& call, std::size_t i = 0) {
  return static_cast<const T*>(call.inputs[i]);
}

template <class T>
T* output(const OpCall& call, std::size_t i = 0) {
  return static_cast<T*>(call.outputs[i]);
}

template <class T>
const T* parameter(const OpCall& call, std::size_t i) {
  return static_cast<const T*>(call.parameters[i]);
}

template <class T>
const T* buffer(const OpCall& call, std::size_t i) {
  return static_cast<const T*>(call.buffers[i]);
}

template <class T>
const T* output_gradient(const OpCall& call) {
  return static_cast<const T*>(call.output_gradients[0]);
}

template <class T>
T* input_gradient(const OpCall& call, std::size_t i = 0) {
  return static_cast<T*>(call.input_gradients[i]);
}

template <class T>
T* parameter_gradient(const OpCall& call, std::size_t i) {
  return static_cast<T*>(call.parameter_gradients[i]);
}

template <class T>
T* buffer_gradient(const OpCall& call, std::size_t i) {
  return static_cast<T*>(call.buffer_gradients[i]);
}

}  // namespace millrace::kernels::reference
