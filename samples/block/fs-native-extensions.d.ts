/** The part of the package that is used; it comes without types. */
declare module 'fs-native-extensions' {
  export function trim(this: void, fd: number, offset: number, bytes: number): Promise<void>;
}
