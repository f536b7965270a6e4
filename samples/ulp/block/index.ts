/** Block storage for upper-layer protocols: backends, wrappers, registered buffers, transfers. */
export * from './backend.js';
export * from './backend.js';
export * from './block-error.js';
export * from './buffer-pool.js';
export * from './faults.js';
export * from './file-backend.js';
export type { FileAttributes } from './identity.js';
export * from './memory-backend.js';
export * from './power-loss.js';
export * from './read-only.js';
export * from './transfer.js';
