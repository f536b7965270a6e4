// Notifications of a device: its completion channel and its asynchronous events.
#pragma once

#include "instance.h"

// 0 or errno.
int startEvents(Device& device);
void stopEvents(Device& device);
void setEventsAlive(Device& device, bool alive);
