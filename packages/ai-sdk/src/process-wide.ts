// What a process has once, however often this package is loaded: as ESM and as CommonJS, or anew after every change
// while an app is developed.

/** The value of this name, made where there is none. */
export function processWide<T>(name: string, make: () => T): T {
  const all = globalThis as unknown as Record<symbol, T | undefined>;
  return (all[Symbol.for(`@bindery/ai-sdk/${name}`)] ??= make());
}
