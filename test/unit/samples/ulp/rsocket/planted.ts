/** Puts another method in the place of one, made of it. @returns what undoes that */
export function planted<T extends object, K extends keyof T>(
  owner: T,
  name: K,
  make: (whole: T[K]) => T[K],
): () => void {
  const whole = Object.getOwnPropertyDescriptor(owner, name)!;
  const value = make(whole.value as T[K]);
  Object.defineProperty(owner, name, { configurable: true, writable: true, value });
  return () => Object.defineProperty(owner, name, whole);
}
