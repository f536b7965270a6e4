export interface Destroyable {
  destroy(): void;
}

/**
 * Tells when an object of the device has been destroyed, by whatever; once, and the device hears
 * of it once, although what is told may destroy it in turn. It stays the device's own
 * object: a wrapper would stand in the data path.
 */
export function onDestroy(object: Destroyable, then: () => void): void {
  const destroy = object.destroy.bind(object);
  let gone = false;
  object.destroy = () => {
    if (gone) return;
    destroy();
    gone = true;
    then();
  };
}
