import { type ConfigFile, parseConfigFile } from '../core/config/config-file.js'
import { ConfigError } from '../core/base/errors.js'
import { loadFile } from './load-file.js'

/** Loads the file of `--config`. Throws a CliError or ConfigError with its problem. */
export async function loadConfig(path: string | undefined, cwd: string): Promise<ConfigFile> {
  if (path === undefined) return {}
  const config = parseConfigFile(await loadFile(path, cwd, '--config'), path)
  if (config.interactive) {
    throw new ConfigError(
      'invalid_config',
      `Invalid configuration in ${path}:\n  interactive: the command line runs one prompt. Leave the key out.`,
      'interactive',
    )
  }
  return config
}
