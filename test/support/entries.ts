import { jest } from '@jest/globals'

/**
 * Lets the examples, and the programs that a test writes, import the package by the names of its entries: `provideEntries({ statewright:
 * core })`. The tests of a bundle share these modules, so hand them on as they are. A test that changes one mocks it by itself, which
 * gives it a bundle of its own.
 */
export function provideEntries(entries: Readonly<Record<string, object>>): void {
  for (const [name, entry] of Object.entries(entries))
    jest.unstable_mockModule(name, () => ({ ...entry }), { virtual: true })
}

/** A program of `examples/`, which finds the entries that are provided. */
export const loadExample = <Module>(name: string): Promise<Module> =>
  import(new URL(`../../examples/${name}`, import.meta.url).href) as Promise<Module>
