import { isAbsolute } from 'node:path'

/**
 * Where the platform keeps data of this user's programs (`~/.local/share/statewright`, `XDG_DATA_HOME`, …); null
 * for a user without a home.
 */
export async function findDataFolder(): Promise<string | null> {
  try {
    const { default: envPaths } = await import('env-paths')
    const { data } = envPaths('statewright', { suffix: '' })
    return isAbsolute(data) ? data : null
  } catch {
    // Node finds no home for a user that the system does not know.
    return null
  }
}
