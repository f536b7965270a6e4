/** The interface that a device's author implements to run the suite of devices. */
import type { ConfiguredProvider, Device } from 'dapl/spi';
import type { Deviation } from '../suite/fixture.js';

/**
 * Optional capabilities of a device or its fixture. Claimed capabilities of `dapl/spi` must also be
 * in the device's own `capabilities`.
 */
export const DEVICE_CAPABILITIES = [
  'uc',
  'ud',
  'atomic',
  'send-with-invalidate',
  'shared-receive-queue',
  'memory-window',
  'multicast',
  /** A queue pair can reach another one of its own device. */
  'loopback',
  /** RDMA reads: the attribute `maxInitiatorDepth` is not 0. */
  'rdma-read',
  /** Completions carry WcFlags.SOLICITED: the attribute `reportsSolicited`. */
  'solicited',
] as const;

export type DeviceNeed = (typeof DEVICE_CAPABILITIES)[number];

/** Two devices that can reach each other by their first GIDs. */
export interface DevicePair {
  /** An open device, or a provider to open. */
  readonly active: Device | ConfiguredProvider;
  readonly passive: Device | ConfiguredProvider;
  /**
   * Resolves when pending work has had time to finish, for example by advancing virtual time.
   * Default: some turns of the event loop.
   */
  settle?(): Promise<void>;
  /** How long to wait for an expected event, in ms; default `DAPL_TEST_PATIENCE_MS`, or 20000. */
  readonly patienceMs?: number;
  /** Closes devices that were returned open, and everything under them. */
  close?(): Promise<void>;
}

export interface DeviceFixture {
  /** Behaviours that need other capabilities are reported as not applicable. */
  readonly capabilities: readonly DeviceNeed[];
  /** See `ProviderFixture`. */
  readonly deviations?: Readonly<Record<string, Deviation>>;
  /** Opens a new pair for each behaviour. */
  openPair(): Promise<DevicePair>;
}
