import type { AgentConfigInput } from '../../../machines/agent/config.js'
import { checkInput, invalidInputError } from './check-input.js'
import { defaultConfig } from './defaults.js'
import { deepFreeze } from '../base/values.js'
import { findJsonProblem } from '../base/json.js'
import { mergeConfig } from './merge-config.js'
import { type ModelSection, canBeSecret, modelSection } from './model-section.js'
import { type PriceTable, priceTable } from './price-table.js'
import { type RequestOptions, requestSections } from './request-options.js'
import { agentSections } from './agent-sections.js'
import { anyText, section } from './value-kinds.js'

/**
 * What a configuration file says: an agent without its tools. Secrets are never part of it; `model.apiKeyEnv` names
 * the environment variable that holds the key.
 */
export interface ConfigFile extends AgentConfigInput, RequestOptions {
  /** Where an editor finds the schema. */
  $schema?: string | undefined
  /** The model, and where it is. Left out: the command line's options and the environment say. */
  model?: ModelSection | undefined
  /** Prices of models that the built-in table does not know, or knows wrongly. */
  prices?: PriceTable | undefined
}

export const configFileKind = section({
  $schema: anyText(),
  model: modelSection,
  ...requestSections,
  prices: priceTable,
  ...agentSections,
})

/**
 * The file's settings, checked and deep-frozen: as they were written, defaults not filled in (`resolveConfig` does).
 *
 * Throws a ConfigError (`invalid_config`) that names the file: for text that is not JSON with line and column, else
 * with every problem, one a line.
 */
export function parseConfigFile(text: string, fileName: string): ConfigFile {
  const what = `configuration in ${fileName}`
  // Some editors put a byte order mark in front.
  const json = text.replace(/^\uFEFF/, '')
  const sentence = findSyntaxProblem(json)
  if (sentence !== null) throw invalidInputError(what, [{ path: '', sentence }])
  const written: unknown = JSON.parse(json)
  const given = checkInput(configFileKind, written, what, { isSecret: canBeSecret })
  // What no single key shows: settings that contradict each other.
  mergeConfig(given, defaultConfig, what)
  return deepFreeze(given)
}

/** The first place where a text is not JSON, by line and column, and what to do there; null when it is. */
function findSyntaxProblem(text: string): string | null {
  const found = findJsonProblem(text, { uniqueKeys: true })
  if (found === null) return null
  const before = text.slice(0, found.position)
  const lines = before.split(/\r\n|\r|\n/)
  const advice =
    findSyntaxAdvice(before, text.slice(found.position, found.position + 2)) ?? `${found.problem}.`
  return `Line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}: ${advice[0]?.toUpperCase()}${advice.slice(1)}`
}

/** What people add to JSON that other languages know. */
function findSyntaxAdvice(before: string, here: string): string | null {
  if (/^\/[/*]|^#/.test(here)) return 'JSON has no comments. Remove this one.'
  if (/^[}\]]/.test(here) && before.trimEnd().endsWith(',')) return 'Remove the comma before this bracket.'
  return null
}
