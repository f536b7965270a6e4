#include "queues/rings.h"

namespace rings {

void Queues::add(Queue* queue) {
  uint32_t place = 0;
  while (place < items_.size() && items_[place]) place++;
  if (place == items_.size()) items_.push_back(nullptr);
  items_[place] = queue;
  queue->id = place | taken_++ << 20;
}

void Queues::remove(Queue* queue) {
  const uint32_t place = queue->id & PLACE_MASK;
  if (place < items_.size() && items_[place] == queue) items_[place] = nullptr;
}

}  // namespace rings
