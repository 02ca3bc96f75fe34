import { readPath } from '../base/json.js'
import { ConfigError } from '../base/errors.js'
import { describeFound, findNearestName, formatKeyPath, normalizeName } from '../base/text.js'
import { anyKey, type Kind, type Path } from './kind.js'
import { findOtherName } from './other-names.js'

export interface Problem {
  path: string
  sentence: string
}

/**
 * Validates the input. Throws one ConfigError with all problems. `what` names the input in the error. `beside` lists
 * other options at the same level, for "did you mean" hints. A value that may be a secret is not shown.
 */
export function checkInput<Value, Taken>(
  kind: Kind<Value, Taken>,
  input: unknown,
  what: string,
  { beside = [], isSecret }: { beside?: readonly string[]; isSecret?: (path: string) => boolean } = {},
): Value {
  const problems = new Map<string, Problem>()
  let read: Value
  try {
    read = kind.read(input, [], (at, phrase) => {
      const path = formatKeyPath(at)
      if (problems.has(path)) return
      if (phrase === null) {
        problems.set(path, { path, sentence: describeUnknownKey(at, kind, beside) })
        return
      }
      const shown = isSecret?.(path) ? '' : ` (got ${describeFound(readPath(input, at))})`
      problems.set(path, { path, sentence: `${path === '' ? 'It' : path} must be ${phrase}${shown}.` })
    })
  } catch (cause) {
    // The input has a getter that throws, or is a revoked proxy.
    const sentence = 'It cannot be read. Use plain objects.'
    throw invalidInputError(what, [{ path: '', sentence }], { cause })
  }
  if (problems.size > 0) throw invalidInputError(what, [...problems.values()])
  return read
}

export function invalidInputError(
  what: string,
  problems: readonly Problem[],
  options?: ErrorOptions,
): ConfigError {
  const message = [`Invalid ${what}:`, ...problems.map(({ sentence }) => `  ${sentence}`)].join('\n')
  return new ConfigError('invalid_config', message, problems[0]?.path || undefined, options)
}

function describeUnknownKey(at: Path, kind: Kind, beside: readonly string[]): string {
  const path = at.slice(0, -1)
  const key = String(at.at(-1))
  const siblings = [...listKeysAt(kind, path), ...(path.length === 0 ? beside : [])]
  return `${formatKeyPath(at)} is not a known key. ${findHint(key, path, siblings, kind)}`
}

/** Another spelling in this section comes first, similarity last: it could match `max_retries` to an unrelated key. */
function findHint(key: string, path: Path, siblings: readonly string[], kind: Kind): string {
  const sameName = siblings.find((sibling) => normalizeName(sibling) === normalizeName(key))
  const other = findOtherName(key)
  if (sameName === undefined && other !== undefined) return `Use ${other}.`
  const match = sameName ?? findNearestName(key, siblings)
  const there = match === undefined ? findInOtherSection(key, kind) : formatKeyPath([...path, match])
  return there === undefined ? `Known keys: ${siblings.join(', ')}.` : `Did you mean ${there}?`
}

/** Finds a key of another section, such as `limits.maxSteps` for `maxSteps`. */
function findInOtherSection(key: string, kind: Kind): string | undefined {
  // Reversed so that the first of two keys with the same name wins.
  const paths = listKeyPaths(kind).toReversed()
  const byName = new Map(paths.map((path) => [path.slice(path.lastIndexOf('.') + 1), path]))
  return byName.get(findNearestName(key, [...byName.keys()]) ?? '')
}

function listKeysAt(kind: Kind, path: Path): string[] {
  const there = path.reduce<Kind[]>(
    (kinds, key) =>
      kinds
        .flatMap(({ keys }) => keys)
        .filter(([name]) => name === key || name === anyKey)
        .map(([, inner]) => inner),
    [kind],
  )
  return there.flatMap(({ keys }) => keys.map(([name]) => name)).filter((name) => name !== anyKey)
}

function listKeyPaths({ keys }: Kind): string[] {
  return keys.flatMap(([name, inner]) =>
    name === anyKey ? [] : [name, ...listKeyPaths(inner).map((path) => `${name}.${path}`)],
  )
}
