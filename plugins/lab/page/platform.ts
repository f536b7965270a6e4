/** Parts of the platform that the product's code expects, and that a page lacks. */

const waiting: (() => void)[] = [];
const channel = new MessageChannel();
channel.port1.onmessage = () => waiting.shift()?.();

const platform = globalThis as { setImmediate?: unknown; process?: unknown };
/** A turn of the event loop, by which all microtasks before it have run. */
platform.setImmediate ??= (task: () => void) => {
  waiting.push(task);
  channel.port2.postMessage(0);
};
platform.process ??= { env: {} };
