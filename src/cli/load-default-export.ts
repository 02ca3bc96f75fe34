import type { SessionStore } from '../core/sessions/store/store.js'
import { CliError } from './cli-error.js'
import { loadModule } from './load-module.js'

type ExportFactory = (given: { store: SessionStore }) => unknown

/** Loads the default export of a module, or what that function returns; `refuse` creates the error for a wrong value. */
export async function loadDefaultExport(
  path: string,
  { cwd, store }: { cwd: string; store: SessionStore },
  { what, option, code }: { what: string; option: string; code: string },
): Promise<{ exported: unknown; made: unknown; refuse: (message: string, cause?: unknown) => CliError }> {
  const refuse = (message: string, cause?: unknown): CliError =>
    new CliError(code, `${option}: ${message}`, option, { cause })
  const { default: exported } = await loadModule(path, cwd, refuse)
  if (typeof exported !== 'function') return { exported, made: exported, refuse }
  try {
    return { exported, made: await (exported as ExportFactory)({ store }), refuse }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw refuse(`'${path}' could not make ${what}: ${why}`, error)
  }
}
