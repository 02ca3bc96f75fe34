/** What memory found for a user message: data for the model, never instructions. */
export interface RetrievedSnippet {
  /** Where it comes from: the name of a document. */
  source: string
  text: string
  score?: number
}
