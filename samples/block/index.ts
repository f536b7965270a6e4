/** Block storage for upper-layer protocols: backends, wrappers, registered buffers. */
export * from './backend.js';
export * from './block-error.js';
export * from './buffer-pool.js';
