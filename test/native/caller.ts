/** Calls the addon without an end, in one of these ways, until its thread is ended. */
import { openSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import { nativeAddon } from './addon.js';
import type { WayOfCalling } from './ways-of-calling.js';

export interface CallerPlan {
  readonly way: WayOfCalling;
  readonly address: string;
  readonly udpPort: number;
  /** No other thread has it. */
  readonly name: string;
}

const PAGE_BYTES = 4096;
const CALLS_A_TURN = 20;
const { way, address, udpPort, name } = workerData as CallerPlan;
const addon = nativeAddon();
const program = openSync(process.execPath, 'r');

const CALLS: Readonly<Record<WayOfCalling, () => void>> = {
  ports() {
    void openNativePort({ addresses: [address], udpPort }).close();
  },
  sockets() {
    const listener = addon.listenUnix(name, 1);
    const near = addon.connectUnix(name);
    const far = listener.accept()!;
    near.identity();
    near.send(Uint8Array.of(1, 2, 3), [0, 1]);
    const message = far.take()!;
    for (const descriptor of message.descriptors) addon.closeDescriptor(descriptor);
    near.close();
    far.close();
    listener.close();
  },
  memory() {
    const { descriptor } = addon.createSharedTable('dapl-test', PAGE_BYTES);
    addon.mapSharedTable(descriptor, PAGE_BYTES);
    addon.closeDescriptor(descriptor);
    addon.shareMemory(name, PAGE_BYTES);
    addon.allocatePages(PAGE_BYTES);
    addon.mapFile(program, 0, PAGE_BYTES, false);
  },
};
const call = CALLS[way];

call();
parentPort?.postMessage('calls');
for (;;) {
  for (let i = 0; i < CALLS_A_TURN; i++) call();
  // What has been closed goes with the loop's next turn.
  await new Promise(setImmediate);
}
