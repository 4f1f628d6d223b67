/** Public face of the llm-genai pack: nothing but what it contributes to `LlmAdapters`. */
export {}
