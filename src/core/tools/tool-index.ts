import type * as OramaModule from '@orama/orama'
import type { DefaultTokenizer } from '@orama/orama'
import { loadOnce, loadPeer } from '../base/platform.js'
import type { Tool } from './tool.js'

// A separate module keeps the types of the optional package out of the public declarations.

export const loadOrama = loadOnce(() => loadPeer<typeof OramaModule>('@orama/orama', 'toolSearch()'))

const boost = { name: 3, description: 1, fields: 1 }

/**
 * A full-text index (BM25) over names, descriptions and argument names. Results are deterministic; ties keep the
 * order of the tools.
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

/** The suffix prevents prefix matches, and clashes with built-in property names. */
const end = '$'

function splitWords(text: string, stem: (word: string) => string): string[] {
  const parts = text.replaceAll(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2').toLowerCase()
  return [...new Set((parts.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).map((word) => stem(word) + end))]
}
