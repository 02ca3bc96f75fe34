/** A piece of text that a retriever found. */
export interface RetrievedSnippet {
  /** Where it comes from, for people and for the model: a file name, a URL, a title. */
  source: string
  /** What it says. */
  text: string
  /** How well it fits; higher is better. What the numbers mean is the retriever's own. */
  score?: number
}

/**
 * Finds text that may help with a query. `memory()` makes one; write one to ask a search service of your own.
 *
 * @example
 * const wiki: Retriever = {
 *   retrieve: async (query, { signal, limit = 5 }) => (await search(query, { signal })).slice(0, limit),
 * }
 */
export interface Retriever {
  /**
   * The best snippets, best first; none when nothing fits.
   * @param options.signal stops the search; it then rejects with the signal's reason
   * @param options.limit snippets at most. Default: the retriever's own
   */
  retrieve(
    query: string,
    options: { signal: AbortSignal; limit?: number },
  ): Promise<readonly RetrievedSnippet[]>
}
