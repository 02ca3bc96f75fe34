import type { Agent } from '../core/agent/agent-options.js'
import { internalsByAgent } from '../core/agent/agent-internals.js'
import { checkBudgets } from '../core/budgets/shared-budget.js'
import { UsageError, optionError } from '../core/base/errors.js'
import {
  callbackRule,
  checkOptions,
  countRule,
  flagRule,
  type OptionRules,
  signalRule,
} from '../core/config/check-options.js'
import { type BatchResult, runItems } from './batch-run.js'
import { type BatchItem, findBatchIdFault, type RunAllOptions } from './batch.js'

/** Maximum number of items started ahead of the next result. */
const maxLookAhead = 1000

const optionRules: OptionRules<RunAllOptions> = {
  id: null,
  concurrency: countRule,
  signal: signalRule,
  onProgress: callbackRule,
  total: { is: (value) => value === 0 || countRule.is(value), phrase: 'a whole number of at least 0' },
  context: null,
  budgets: null,
  retryFailed: flagRule,
}

/**
 * Runs an agent on many items concurrently, and yields their results in the order of the items.
 *
 * - With a store, each item is a session `ID.ITEM`. After a process crash, the same call continues: results of ended
 *   items are read from the store, and unfinished items resume. Requests that were in flight are repeated. A waiting
 *   item yields its waiting run.
 * - Without a store, items run in memory.
 * - Items are read on demand, at most a thousand ahead of the results, so the source can be a stream of any length.
 * - The batch waits for a session that another process holds.
 * - The loop ends early when `signal` aborts. Leaving the loop also parks the batch.
 *
 * @example
 * const items = [
 *   { id: 'april', input: 'Summarise the report on April.' },
 *   { id: 'may', input: 'Summarise the report on May.' },
 * ]
 * for await (const { item, result, session } of runAll(agent, items, { id: 'reports', concurrency: 4 }))
 *   console.log(item.id, session, result?.state, result?.output)
 * @throws {UsageError} `invalid_option`, `invalid_argument`; while it runs, `invalid_item` for an invalid item,
 * `duplicate_item`
 * @throws {ConfigError} while it runs, for an agent that cannot run: `missing_api_key`, …
 * @throws {StoreError} while it runs, when the store cannot be used: `store_unavailable`, …
 */
export function runAll<Item extends BatchItem, Output, Tools>(
  agent: Agent<Output, Tools>,
  items: Iterable<Item> | AsyncIterable<Item>,
  options: RunAllOptions,
): AsyncIterableIterator<BatchResult<Item, Output, Tools>> {
  const internals = typeof agent === 'object' && agent !== null ? internalsByAgent.get(agent) : undefined
  if (!internals)
    throw new UsageError(
      'invalid_argument',
      'runAll(agent, items, options): agent must be an agent created by createAgent().',
      'agent',
    )
  const source = toIterator(items)
  const checked = checkOptions('runAll(agent, items, options)', options, optionRules)
  const { id, concurrency = 8, budgets, total = Array.isArray(items) ? items.length : null } = checked
  checkBudgets(budgets)
  const fault = findBatchIdFault(id)
  if (fault !== null) throw optionError(`runAll: id ${fault}.`, 'id')
  return runItems<Item, Output, Tools>({
    ...checked,
    agent,
    store: internals.store,
    isRedacted: internals.parts.shields.input.length > 0,
    clock: internals.parts.clock,
    source,
    concurrency,
    lookAhead: Math.max(maxLookAhead, 2 * concurrency),
    total,
  })
}

function toIterator<Item>(items: Iterable<Item> | AsyncIterable<Item>): Iterator<Item> | AsyncIterator<Item> {
  if (typeof items === 'object' && items !== null) {
    if (Symbol.asyncIterator in items) return items[Symbol.asyncIterator]()
    if (Symbol.iterator in items) return items[Symbol.iterator]()
  }
  throw new UsageError(
    'invalid_argument',
    'runAll(agent, items, options): items must be an iterable of { id, input }.',
    'items',
  )
}
