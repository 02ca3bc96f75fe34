import { StatewrightError } from './errors.js'

/** Code that is loaded when it is first asked for, once. What could not be loaded is tried again the next time. */
export function loadOnce<Module>(load: () => Promise<Module>): () => Promise<Module> {
  let loading: Promise<Module> | undefined
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }
}

/**
 * Loads a package that only some need, and that is therefore not installed with Statewright.
 * @throws {StatewrightError} `missing_package`, with the command that installs it
 */
export async function loadPeer<Module>(name: string, purpose: string): Promise<Module> {
  try {
    // Not a literal: bundlers leave it alone, and types do not need the package.
    return (await import(name)) as Module
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error
    const installed = /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name
    throw new StatewrightError(
      'missing_package',
      `${purpose} needs the package ${installed}, which is not installed. Run: npm install ${installed}`,
      installed,
      { cause: error },
    )
  }
}
