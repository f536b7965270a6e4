export interface Destroyable {
  destroy(): void;
}

/**
 * Tells when an object of the device has been destroyed, whoever did it. It stays the device's own
 * object: a wrapper would stand in the data path.
 */
export function onDestroy(object: Destroyable, then: () => void): void {
  const destroy = object.destroy.bind(object);
  object.destroy = () => {
    destroy();
    then();
  };
}
