//! The contract of the store, kept by both adapters, and what each promises beside it.

#[macro_use]
mod contract;
mod edge;
mod fixture;
mod measure;
mod qdrant;
