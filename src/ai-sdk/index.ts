/** Models of the AI SDK as models of agents. Types alone: the provider's package is yours to install. */
export { languageModel } from './language-model.js'
export type { AiSdkModel, SpecificationVersion } from './model.js'
export type { LanguageModelOptions } from './options.js'
