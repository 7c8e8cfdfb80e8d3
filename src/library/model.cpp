#include "library/model.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "base/error.h"
#include "library/border.h"

namespace inferno::library {

Error unloaded() {
  return {ErrorKind::invalid_request, "the model was unloaded", {.why = {}, .next = "free the handle"}};
}

std::shared_ptr<Model> Model::load(const std::string& name, LoadSettings settings) {
  std::atomic<bool> is_cancelled = false;
  const auto report = [&](std::uint64_t done, std::uint64_t total) {
    if (is_cancelled.load() || settings.progress(done, total)) return;
    is_cancelled.store(true);
    fail(ErrorKind::io, "loading was cancelled");
  };
  auto model = std::make_shared<Model>(settings.log);
  const Log& log = model->log_;
  std::uint64_t total_bytes = 0;
  const LoadCallbacks callbacks = {.device_opened =
                                       [&](const DeviceInfo& device) {
                                         model->facts_.device = device;
                                         log(INFERNO_LOG_INFO,
                                             fmt::format("device: {} ({})", device.name, device.kernels));
                                       },
                                   .progress =
                                       [&](std::uint64_t done, std::uint64_t total) {
                                         total_bytes = total;
                                         report(done, total);
                                       },
                                   .weights_loaded =
                                       [&](const LoadReport& loaded, double) {
                                         model->facts_.weights = loaded.weights;
                                         for (const std::string& note : loaded.notes)
                                           log(INFERNO_LOG_INFO, note);
                                       }};
  try {
    report(0, 0);
    const ResolvedModel resolved = Catalogue(settings.catalogue).resolve(name);
    model->text_model_ = std::make_unique<TextModel>(resolved, settings.model, callbacks);
    const std::uint64_t total = total_bytes > 0 ? total_bytes : model->facts_.weights.bytes;
    report(total, total);
  } catch (...) {
    if (is_cancelled.load()) throw Cancelled{fmt::format("{}: loading was cancelled", name)};
    throw;
  }
  return model;
}

Model::Use::~Use() {
  if (!model_) return;
  {
    const std::lock_guard lock(model_->mutex_);
    if (--model_->uses_ > 0) return;
  }
  model_->unused_.notify_all();
}

std::optional<Model::Use> Model::try_use() {
  const std::lock_guard lock(mutex_);
  if (!is_open_) return std::nullopt;
  ++uses_;
  return Use(shared_from_this());
}

Model::Use Model::use() {
  auto use = try_use();
  if (!use) throw unloaded();
  return *std::move(use);
}

void Model::add_user(const void* user, std::function<void()> detach) {
  const std::lock_guard lock(mutex_);
  users_[user] = std::move(detach);
}

void Model::remove_user(const void* user) {
  const std::lock_guard lock(mutex_);
  users_.erase(user);
}

void Model::unload() {
  std::unordered_map<const void*, std::function<void()>> users;
  {
    std::unique_lock lock(mutex_);
    is_open_ = false;
    unused_.wait(lock, [this] { return uses_ == 0; });
    users = users_;
  }
  for (const auto& [user, detach] : users) detach();
  text_model_.reset();  // joins the engine's thread, whose last events wake the readers of answers
}

}  // namespace inferno::library
