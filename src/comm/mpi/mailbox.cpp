// Probes and receives of texts.
#include "comm/mpi/mailbox.h"

#include <limits>
#include <stdexcept>

#include "comm/mpi/mpi_error.h"

namespace millrace::comm {
namespace {

constexpr int kTag = 4711;  // below the smallest tag limit that MPI allows

}  // namespace

Mailbox::Mailbox(MPI_Comm communicator) : communicator_(communicator) {
  check_mpi(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
}

void Mailbox::send(int to, const std::string& text) const {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw std::length_error("Mailbox::send: a text of 2 GiB or more");
  }
  check_mpi(MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, kTag, communicator_), "MPI_Send");
}

std::optional<Letter> Mailbox::poll() const {
  int there = 0, size = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kTag, communicator_, &there, &status), "MPI_Iprobe");
  if (there == 0) return std::nullopt;
  check_mpi(MPI_Get_count(&status, MPI_CHAR, &size), "MPI_Get_count");
  Letter letter{status.MPI_SOURCE, std::string(static_cast<std::size_t>(size), '\0')};
  check_mpi(MPI_Recv(letter.text.data(), size, MPI_CHAR, letter.from, kTag, communicator_, MPI_STATUS_IGNORE),
            "MPI_Recv");
  return letter;
}

}  // namespace millrace::comm
