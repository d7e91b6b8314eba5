// What the API says, as far as the page reads it. docs/api.md and /docs describe all of it.
import type { Whereabouts } from "../components/place_text";

export interface Model {
  id: string;
  owned_by: string;
}

export type Role = "owner" | "editor" | "reader" | "restricted_analyst";

export interface KnowledgeBase {
  id: string;
  name: string;
  role: Role;
}

export interface Conversation {
  id: string;
  created_at: number;
  metadata: Record<string, string>;
}

export interface Annotation extends Whereabouts {
  type: string;
  index?: number;
  file_id?: string;
  filename?: string;
}

export interface ContentPart {
  type: string;
  text?: string;
  refusal?: string;
  filename?: string;
  annotations?: Annotation[];
}

export interface SearchResult extends Whereabouts {
  file_id: string;
  filename: string;
  score: number;
  text: string;
}

export interface Item {
  type: string;
  id: string;
  status?: string;
  role?: string;
  /** In lists of a conversation's items with `include[]=response_id`. */
  response_id?: string;
  content?: ContentPart[] | string;
  summary?: ContentPart[];
  queries?: string[];
  results?: SearchResult[] | null;
  name?: string;
  arguments?: string;
  output?: unknown;
}

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  input_tokens_details?: { cached_tokens?: number };
}

export type Status = "queued" | "in_progress" | "completed" | "incomplete" | "cancelled" | "failed";

export interface ResponseObject {
  id: string;
  created_at: number;
  status: Status;
  model: string;
  conversation: { id: string } | null;
  previous_response_id: string | null;
  output: Item[];
  error: { message: string; code: string } | null;
  incomplete_details: { reason: string } | null;
  usage: Usage | null;
  tools?: { type: string; vector_store_ids?: string[] }[];
}
