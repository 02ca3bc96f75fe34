import type { ComponentType } from 'preact'
import { Loading, Trouble, useLoaded } from './loading.js'

/** Loads a part of the page's code that most visits do not need. */
export async function loadPart<Part>(load: () => Promise<Part>): Promise<Part> {
  try {
    return await load()
  } catch {
    throw new Error(
      'This part of the page cannot be loaded. Is the studio still running? Then reload the page.',
    )
  }
}

/** A screen whose code is loaded when it is first shown. */
export function createLazyScreen<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  return function LazyScreen(props: Props) {
    const { value: Screen, error, reload } = useLoaded('', () => loadPart(load))
    if (error !== null) return <Trouble error={error} onRetry={reload} />
    return Screen === null ? <Loading what="Loading the screen" /> : <Screen {...props} />
  }
}
