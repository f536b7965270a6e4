import { gidFromIp } from '../../core/spi/index.js';
import { monotonicClock } from '../../providers/host/index.js';
import type { SocketPort, SocketPortCounters } from '../../providers/softroce/port/port-options.js';
import { MemoryPort } from './memory-port.js';

/** A port whose time goes on by a microsecond a look, and whose peer is at work between looks. */
export class WatchedPort extends MemoryPort implements SocketPort {
  readonly kind = 'native';
  readonly clockUs = Float64Array.of(monotonicClock.now());
  override readonly counters: SocketPortCounters = {
    ...new MemoryPort(gidFromIp('10.0.0.1')).counters,
    sentTrains: 0,
    receivedTrains: 0,
    droppedDatagrams: 0,
    unseenHeaders: 0,
    channelReceived: 0,
    channelSent: 0,
    channelDropped: 0,
  };
  peerWorks = (): void => undefined;

  override receive(): number {
    this.clockUs[0]! += 1;
    this.peerWorks();
    return super.receive();
  }
}
