// A loaded model as the library's callers see it. Unloading waits for the calls that use the model and ends
// its answers, so that its memory is free when it returns, whatever handles still exist.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "library/load_options.h"
#include "service/text_model.h"

namespace inferno::library {

// Thread-safe.
class Model : public std::enable_shared_from_this<Model> {
 public:
  // What loading has found out.
  struct Facts {
    DeviceInfo device;
    WeightFootprint weights;
  };

  // Errors of the catalogue and of TextModel; Cancelled by the progress callback.
  static std::shared_ptr<Model> load(const std::string& name, LoadSettings settings);

  // The right to use the model for the time of a call. Never kept while waiting for an answer.
  class Use {
   public:
    explicit Use(std::shared_ptr<Model> model) : model_(std::move(model)) {}
    Use(Use&& other) noexcept = default;
    Use& operator=(Use&&) = delete;
    ~Use();
    const TextModel& operator*() const { return *model_->text_model_; }
    const TextModel* operator->() const { return model_->text_model_.get(); }

   private:
    std::shared_ptr<Model> model_;
  };
  // nullopt once the model is being unloaded.
  std::optional<Use> try_use();
  // Error{invalid_request} then.
  Use use();

  // Once only, and not on the engine's thread.
  void unload();

  // unload() calls `detach` once no call uses the model, unless `user` was removed.
  void add_user(const void* user, std::function<void()> detach);
  void remove_user(const void* user);

  const Facts& facts() const { return facts_; }
  const Log& log() const { return log_; }

  explicit Model(Log log) : log_(log) {}

 private:
  Log log_;
  Facts facts_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable unused_;
  int uses_ = 0;
  bool is_open_ = true;
  std::unordered_map<const void*, std::function<void()>> users_;
  std::unique_ptr<TextModel> text_model_;  // changes only while there are no uses
};

Error unloaded();

}  // namespace inferno::library
