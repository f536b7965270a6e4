/** What threads of ended-threads.test.ts call without an end. */
export const WAYS_OF_CALLING = ['ports', 'sockets', 'memory'] as const;
export type WayOfCalling = (typeof WAYS_OF_CALLING)[number];
