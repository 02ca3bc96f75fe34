import { createRequire } from 'node:module'
import { StatewrightError } from '../../core/base/errors.js'

/**
 * The file of a package that only some need, for a thread that loads it itself.
 * @throws {StatewrightError} `missing_package`, with the command that installs it
 */
export function resolvePeer(path: string, name: string, purpose: string): string {
  try {
    return createRequire(import.meta.url).resolve(path)
  } catch (error) {
    throw new StatewrightError(
      'missing_package',
      `${purpose} needs the package ${name}, which is not installed. Run: npm install ${name}`,
      name,
      { cause: error },
    )
  }
}
