/** The part of the package that is used; it comes without types. */
declare module 'fs-native-extensions' {
  export function trim(this: void, fd: number, offset: number, bytes: number): Promise<void>;
  export function getAttr(this: void, fd: number, name: string): Promise<Uint8Array | null>;
  export function setAttr(this: void, fd: number, name: string, value: Uint8Array): Promise<void>;
}
