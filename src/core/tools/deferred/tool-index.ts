import type * as OramaModule from '@orama/orama'
import type { DefaultTokenizer } from '@orama/orama'
import { loadOnce, loadPeer } from '../../base/platform.js'
import type { Tool } from '../tool.js'

/** The search engine, which `statewright/memory` uses, too. */
export const loadOrama = loadOnce(() => loadPeer<typeof OramaModule>('@orama/orama', 'toolSearch()'))

/** How much more a word of a name says than one of a description. */
const boost = { name: 3, description: 1, fields: 1 }

/**
 * A search over names, descriptions and the arguments of tools (BM25). The same query finds the same names in the same order:
 * those that fit equally well come in the order of the tools.
 */
export async function createToolIndex(tools: readonly Tool[]): Promise<(query: string) => Promise<string[]>> {
  const orama = await loadOrama()
  const stemmer = orama.components.tokenizer.createTokenizer({ stemming: true }) as DefaultTokenizer
  const database = orama.create({
    schema: { name: 'string', description: 'string', fields: 'string' },
    sort: { enabled: false },
    components: {
      tokenizer: {
        language: 'english',
        normalizationCache: new Map(),
        tokenize: (text) => splitWords(text, (word) => stemmer.stemmer?.(word) ?? word),
      },
    },
  })
  const order = new Map<string, number>()
  for (const [index, { name, description, parameters }] of tools.entries()) {
    order.set(name, index)
    const fields = Object.keys(parameters.properties ?? {}).join(' ')
    void orama.insert(database, { id: name, name, description, fields })
  }
  return async (query) => {
    const { hits } = await orama.search(database, {
      term: query,
      properties: ['name', 'description', 'fields'],
      boost,
      threshold: 1,
      limit: tools.length,
    })
    const place = (id: string): number => order.get(id) ?? 0
    return hits
      .toSorted((one, other) => other.score - one.score || place(one.id) - place(other.id))
      .map(({ id }) => id)
  }
}

/** The mark at the end keeps words of queries from finding longer ones, and words from being names of JavaScript's own. */
const end = '$'

/** The parts of a name (`createIssue`, `create_issue`) are words like others. */
function splitWords(text: string, stem: (word: string) => string): string[] {
  const parts = text.replaceAll(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2').toLowerCase()
  return [...new Set((parts.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).map((word) => stem(word) + end))]
}
