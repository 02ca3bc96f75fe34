/**
 * A person or a program, as the app identifies it.
 * @example
 * const bob: Principal = { id: 'bob', roles: ['finance'] }
 */
export interface Principal {
  /** The id of the person or program, 1 to 200 characters. */
  id: string
  roles?: readonly string[]
}

/** Adds an author to the requesters of a run. Each author is listed once, the latest last. */
export function addRequester(
  requesters: readonly Principal[] = [],
  by: Principal | undefined,
): { requesters?: readonly Principal[] } {
  if (by === undefined) return {}
  return { requesters: [...requesters.filter(({ id }) => id !== by.id), by] }
}
