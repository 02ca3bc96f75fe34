import { jest } from '@jest/globals'

/**
 * Lets the examples, and programs that a test writes, import the package by its entry names:
 * `provideEntries({ statewright: core })`. The tests of a bundle share these modules, so pass them
 * unmodified. A test that changes a module mocks it directly, which gives the test a separate bundle.
 */
export function provideEntries(entries: Readonly<Record<string, object>>): void {
  for (const [name, entry] of Object.entries(entries))
    jest.unstable_mockModule(name, () => ({ ...entry }), { virtual: true })
}

/** A program of `examples/`, which imports the provided entries. */
export const loadExample = <Module>(name: string): Promise<Module> =>
  import(new URL(`../../examples/${name}`, import.meta.url).href) as Promise<Module>
