/** One end of a pair, as its process and its device are told, and what it reports. */
/**
 * Where the device lives: with its consumer, or on a worker thread that shares memory with it. Or
 * all pairs are threads of two processes, each with a device that has a slot of one address.
 */
export const MODES = ['one thread', 'worker', 'slots'] as const;
export type Mode = (typeof MODES)[number];

export interface Job {
  readonly role: 'client' | 'server';
  readonly mode: Mode;
  readonly local: string;
  readonly remote: string;
  readonly messageBytes: number;
  /** Messages in flight, or receives. */
  readonly depth: number;
  /** The consumer reads each message, as an application would: its CRC-32. */
  readonly checksum: boolean;
  /** Of the client's measurement. */
  readonly seconds: number;
  /** Pairs of the process, in mode `slots`; 1 in others. */
  readonly threads: number;
  /** Which of them this is, from 0. */
  readonly thread: number;
}

export interface Result {
  /** All, and those of the time that counts, which is in seconds. */
  readonly messages: number;
  readonly counted: number;
  readonly seconds: number;
  /** User and system time of all threads, for all messages. */
  readonly cpuSeconds: number;
}

/** Int32 words that device and consumer share: messages that each has handed over so far. */
export const FINISHED = 0;
export const GIVEN = 1;
export const WORDS = 2;
