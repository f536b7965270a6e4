/** What the author of a device supplies to run the suite of devices. */
import type { ConfiguredProvider, Device } from 'dapl/spi';
import type { Deviation } from '../suite/fixture.js';

/**
 * What a device, or the fixture under it, can do beyond reliable connections. Those of `dapl/spi`
 * must be among the device's own `capabilities` if they are claimed.
 */
export const DEVICE_CAPABILITIES = [
  'uc',
  'ud',
  'atomic',
  'send-with-invalidate',
  'shared-receive-queue',
  'memory-window',
  'multicast',
  /** A queue pair reaches one of its own device. */
  'loopback',
  /** RDMA reads: the attribute `maxInitiatorDepth` is not 0. */
  'rdma-read',
  /** WcFlags.SOLICITED is known: the attribute `reportsSolicited`. */
  'solicited',
] as const;

export type DeviceNeed = (typeof DEVICE_CAPABILITIES)[number];

/** Two devices that can reach each other by the first GID of each. */
export interface DevicePair {
  /** Open, or a provider, which then is opened. */
  readonly active: Device | ConfiguredProvider;
  readonly passive: Device | ConfiguredProvider;
  /**
   * Resolves when what is under way has had time to happen: virtual time that passes, hardware that
   * is told to work. Absent: turns of the event loop.
   */
  settle?(): Promise<void>;
  /** How long what must come is waited for, in ms; default `DAPL_TEST_PATIENCE_MS`, or 20000. */
  readonly patienceMs?: number;
  /** Ends the devices that it was given open, and what is under them. */
  close?(): Promise<void>;
}

export interface DeviceFixture {
  /** Behaviours that need another one are reported as not applicable. */
  readonly capabilities: readonly DeviceNeed[];
  /** As those of `ProviderFixture`. */
  readonly deviations?: Readonly<Record<string, Deviation>>;
  /** A fresh pair for every behaviour. */
  openPair(): Promise<DevicePair>;
}
