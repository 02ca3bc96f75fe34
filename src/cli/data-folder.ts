import { isAbsolute } from 'node:path'

/**
 * The platform's folder for the user's data (`~/.local/share/statewright`, `XDG_DATA_HOME`, …); null for a user without a
 * home.
 */
export async function findDataFolder(): Promise<string | null> {
  try {
    const { default: envPaths } = await import('env-paths')
    const { data } = envPaths('statewright', { suffix: '' })
    return isAbsolute(data) ? data : null
  } catch {
    // The system does not know the user.
    return null
  }
}
