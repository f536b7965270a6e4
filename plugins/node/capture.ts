/**
 * DAPL_PCAP: the file that the packets of all devices of this process go to. `%p` in it stands for
 * the process, and for the worker thread if there is one: each needs a file of its own.
 */
import { isMainThread, threadId } from 'node:worker_threads';
import type { ConfiguredProvider } from '../../core/spi/index.js';
import { capture } from '../pcap/index.js';

/** @returns the provider itself unless the variable is set */
export function captureIfAsked(provider: ConfiguredProvider): ConfiguredProvider {
  const file = process.env['DAPL_PCAP'];
  if (file === undefined || file === '') return provider;
  const writer = isMainThread ? String(process.pid) : `${String(process.pid)}-${String(threadId)}`;
  return capture(provider, { file: file.replaceAll('%p', writer) });
}
