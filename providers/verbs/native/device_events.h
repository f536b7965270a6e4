// Notifications of a device: its completion channel and its asynchronous events.
#pragma once

#include "instance.h"

// What has been raised is told now. To be called before something later is told.
void drainAsyncEvents(Instance& instance);

// 0 or errno.
int startEvents(Device& device);
void stopEvents(Device& device);
void setEventsAlive(Device& device, bool alive);
