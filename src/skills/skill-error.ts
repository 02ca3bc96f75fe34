import { ConfigError } from '../core/base/errors.js'

/** A skill that cannot be used. `where`: its file, or its name. */
export function invalidSkillError(where: string, problem: string, options?: ErrorOptions): ConfigError {
  return new ConfigError('invalid_skill', `Skill ${where}: ${problem}`, where, options)
}
