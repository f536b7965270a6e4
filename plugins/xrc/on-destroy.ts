export interface Destroyable {
  destroy(): void;
}

/**
 * Calls `then` once, when an object of the device has been destroyed, however that happens. The
 * device sees one destroy, although `then` may call it again. The object is not wrapped: a wrapper
 * would slow down the data path.
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
